/** Entry point of the module host's thread. */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { type FetchImage, Images } from '@platform/worker/runtimes/images'
import { openLocalRuntime } from '@platform/worker/runtimes/local-runtime'
import { HostThreadData, type HostThreadMessage, type HostThreadCommand } from './host.ts'
import { serveHost } from './host-server.ts'
import { formatModuleLine } from './module-log.ts'
import { runFolderFor } from './run-folder.ts'

/** Time limit for modules to stop when the platform stops: 30 s for `stop` and 5 s for `dispose`. */
const graceMs = 35_000

const { dataDir, mode, token, port } = HostThreadData.parse(workerData)
const parent = parentPort
if (parent === null) throw new Error('This file runs as a worker thread only.')
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
const post = (message: HostThreadMessage) => parent.postMessage(message)

// Imported on demand, because most starts find all images on the disk.
const fetchOnDemand: FetchImage = async (name, folder) => {
  const { fetchImage } = await import('@platform/worker/runtimes/fetch-image')
  const { registryClientFor } = await import('@platform/core/modules/registries')
  return fetchImage(registryClientFor, name, folder)
}

const tokens = new Map<string, string>()
const runtime = await openLocalRuntime({
  mode,
  images: new Images(join(dataDir, 'modules', 'images'), fetchOnDemand),
  runFolder: await runFolderFor(dataDir),
  dataFolders: [dataDir, join(dataDir, 'modules')],
  tokenOf: async (id) => tokens.get(id) ?? '',
  onLog: (moduleId, line) => process.stdout.write(`${formatModuleLine(moduleId, line)}\n`),
  onFallback: (reason) =>
    post({
      kind: 'log',
      message: "containers are unavailable; only the platform's own modules run, as processes",
      details: { reason },
    }),
})
const server = await serveHost({
  runtime,
  tokens,
  token,
  port,
  onError: (error) => post({ kind: 'log', message: 'the module host failed', details: { error } }),
})
const closeCommand = new Promise<void>((resolve) => {
  parent.on('message', (command: HostThreadCommand) => {
    if (command === 'close') resolve()
    else Object.assign(process.env, command.environment)
  })
})
post({ kind: 'ready', url: server.url, isolation: runtime.isolation, isFallback: runtime.isFallback })
// Node writes the cache only at a regular exit, and this thread may be killed.
flushCompileCache()
await closeCommand
await Promise.all([server.close(), runtime.close(graceMs)])
parent.close()
