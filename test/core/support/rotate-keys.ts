/**
 * Rotates a key in a process of its own, which a failpoint may kill. Arguments: the offset of the clock in milliseconds,
 * and the kind of key.
 */
import { shiftClock } from '@platform/core/clock'
import { rotationIn } from '@platform/core/signing/keys'

shiftClock(Number(process.argv[2]))
await rotationIn({ rotate: process.argv[3] ?? 'access' })?.()
