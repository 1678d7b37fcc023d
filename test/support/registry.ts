import { startRegistry } from '@platform/local/registry/server'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { type RegistryClient, registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { temporaryFolder } from './temporary-folder.ts'

const password = 'correct horse battery'

/** This file must not import core, which reads its settings when it is imported. */
export async function startTestRegistry() {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  const startAt = (port: number) => startRegistry({ folder, port, password, log: () => undefined })
  let registry = await startAt(0)
  starting.defer(() => registry.close(0))
  const { host } = registry
  const credentials = async () => ({ username: 'platform', password })
  const started = starting.move()
  return {
    host,
    client: registryClient(host, { transport: plainTransport, credentials }),
    stopDuring: async <Result>(work: () => Promise<Result>): Promise<Result> => {
      await registry.close(0)
      try {
        return await work()
      } finally {
        registry = await startAt(Number(host.split(':')[1]))
      }
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

export async function registryOf({ dataDir }: { dataDir: string }): Promise<RegistryClient> {
  const { registry } = await readRuntimeFile(dataDir)
  return registryClient(registry.host, { transport: plainTransport, credentials: async () => registry })
}
