/** Rotates a key in a process that a failpoint kills. Arguments: the offset of the clock in milliseconds, and the key. */
import { shiftClock } from '@platform/core/clock'
import { rotationIn } from '@platform/core/signing/keys'

shiftClock(Number(process.argv[2]))
await rotationIn({ rotate: process.argv[3] ?? 'access' })?.()
