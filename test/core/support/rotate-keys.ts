/** Rotates keys in a process that a failpoint kills. Argument: the offset of the clock in milliseconds. */
import { shiftClock } from '@platform/core/clock'
import { ensureKeys } from '@platform/core/signing/keys'

shiftClock(Number(process.argv[2]))
await ensureKeys({ rotate: true })
