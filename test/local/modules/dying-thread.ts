/** The thread of the module host; fails when the file `die` exists. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { workerData } from 'node:worker_threads'

const file = join(workerData.dataDir, 'die')
setInterval(() => {
  if (!existsSync(file)) return
  rmSync(file)
  throw new Error('The thread died.')
}, 20).unref()
await import('@platform/local/modules/host-thread')
