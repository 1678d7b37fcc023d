/** `npm run demo:clean`: stops the processes of the demo and removes its folder. */
import { join } from 'node:path'
import { makeFolder } from '@platform/oci/make-folder'
import { parseCommandLine } from '../command-line.ts'
import { lockFile } from '../file-lock.ts'
import { StartError } from '../start-error.ts'
import { type Demo, findDemo, removeDemo } from './folder.ts'
import { stopRecorded } from './process-record.ts'
import { platformRecord, stopLeftoverRelays } from './relays.ts'

/** Time that the platform has to stop after SIGTERM, before SIGKILL. */
const platformGraceMs = 45_000

async function stopAll(demo: Demo): Promise<void> {
  // The platform is stopped first, because it stops its own relays and waits for them.
  await stopRecorded(platformRecord(demo), platformGraceMs)
  await stopLeftoverRelays(demo)
}

function claim({ dataDir }: Demo): Disposable {
  makeFolder(dataDir)
  const lock = lockFile(join(dataDir, 'lock.sqlite'))
  if (lock === undefined) throw new StartError('The demo is starting. Try again.')
  return lock
}

parseCommandLine(
  `npm run demo:clean

Stops the processes of the demo and removes its folder.`,
  {},
)
try {
  const demo = await findDemo()
  if (demo !== undefined) {
    await stopAll(demo)
    // A demo that starts now must not claim the folder during its removal.
    using _ = claim(demo)
    await removeDemo(demo)
  }
  console.log(demo === undefined ? 'There is no demo to remove.' : `The demo in ${demo.folder} was removed.`)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
