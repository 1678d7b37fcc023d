/** Serves a folder in a process or worker of its own, for tests that kill it. */
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { startSqs } from '@platform/local/emulators/sqs/server'

const sqs = await startSqs({ dataDir: workerData ?? process.argv[2] })
process.send?.(sqs.url)
if (parentPort) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
  parentPort.postMessage(sqs.url)
  await once(parentPort, 'message')
  await sqs.close()
}
