/** Serves a folder in a process or worker of its own, for tests that kill it. */
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { startSecretsManager } from '@platform/local/emulators/secrets/server'

const server = await startSecretsManager({ dataDir: workerData ?? process.argv[2] })
process.send?.(server.url)
if (parentPort) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
  parentPort.postMessage(server.url)
  await once(parentPort, 'message')
  await server.close()
}
