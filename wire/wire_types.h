/* Fixed-width integer types under the same names in BPF programs and in user space. */
#ifndef ASSAY_WIRE_TYPES_H
#define ASSAY_WIRE_TYPES_H

#ifdef __bpf__
#include <linux/types.h>
typedef __u64 wire_u64;
typedef __s64 wire_s64;
typedef __u32 wire_u32;
typedef __s32 wire_s32;
typedef __u16 wire_u16;
typedef __s16 wire_s16;
typedef __u8 wire_u8;
#else
#include <stdint.h>
typedef uint64_t wire_u64;
typedef int64_t wire_s64;
typedef uint32_t wire_u32;
typedef int32_t wire_s32;
typedef uint16_t wire_u16;
typedef int16_t wire_s16;
typedef uint8_t wire_u8;
#endif

#endif
