/* Multiply-adds of float32 values in registers, for Arm cores whose FPU has VFMA. Counts of instructions in comments
 * are those of fused products. */
#ifndef MCUD_MAC_F32_VFP_H
#define MCUD_MAC_F32_VFP_H

#include "mcud_simd_f32.h"

/* Four registers each. */
#define MCUD_S0 "s0", "s1", "s2", "s3"
#define MCUD_S4 "s4", "s5", "s6", "s7"
#define MCUD_S8 "s8", "s9", "s10", "s11"
#define MCUD_S12 "s12", "s13", "s14", "s15"
#define MCUD_S16 "s16", "s17", "s18", "s19"
#define MCUD_S20 "s20", "s21", "s22", "s23"
#define MCUD_S24 "s24", "s25", "s26", "s27"
#define MCUD_S28 "s28", "s29", "s30", "s31"
#define MCUD_SAME(reg) reg, reg, reg, reg

/* Four sums += x * w, all of them in four registers. If not fused, the products go to the last four registers, which
 * may be those of x or w. */
#define MCUD_MAC4_F32(...) MCUD_MAC4_OF_REGISTERS_F32(__VA_ARGS__)
#if MCUD_FUSES_F32
#define MCUD_MAC4_OF_REGISTERS_F32(a, b, c, d, xa, xb, xc, xd, wa, wb, wc, wd, pa, pb, pc, pd)               \
    "vfma.f32 " a ", " xa ", " wa "\n\t" "vfma.f32 " b ", " xb ", " wb "\n\t"                                \
    "vfma.f32 " c ", " xc ", " wc "\n\t" "vfma.f32 " d ", " xd ", " wd "\n\t"
#else
/* No blanks, since C99 guarantees string literals of at most 4,095 characters. */
#define MCUD_MAC4_OF_REGISTERS_F32(a, b, c, d, xa, xb, xc, xd, wa, wb, wc, wd, pa, pb, pc, pd)               \
    "vmul.f32 " pa "," xa "," wa "\n" "vmul.f32 " pb "," xb "," wb "\n"                                      \
    "vmul.f32 " pc "," xc "," wc "\n" "vmul.f32 " pd "," xd "," wd "\n"                                      \
    "vadd.f32 " a "," a "," pa "\n" "vadd.f32 " b "," b "," pb "\n"                                          \
    "vadd.f32 " c "," c "," pc "\n" "vadd.f32 " d "," d "," pd "\n"
#endif

#endif
