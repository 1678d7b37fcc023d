/** Rotates keys in a process of its own, which a failpoint may end: `node rotate-keys.ts <milliseconds that the clock is ahead>`. */
import { shiftClock } from '@platform/core/clock'
import { ensureKeys } from '@platform/core/signing/keys'

shiftClock(Number(process.argv[2]))
await ensureKeys({ rotate: true })
