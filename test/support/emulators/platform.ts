/** Runs the platform like `npm start`, with fault injection in the emulators. */
import { run } from '@platform/local/run'

await run({ emulatorHooks: new URL('hooks.ts', import.meta.url).href })
