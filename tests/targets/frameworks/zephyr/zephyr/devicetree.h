#define DT_CHOSEN(property) property
