"""Attention of one query over live rows."""
