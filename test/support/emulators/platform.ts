/** `npm start` with emulators that have fault switches. */
import { run } from '@platform/local/run'

await run({ emulatorHooks: new URL('hooks.ts', import.meta.url).href })
