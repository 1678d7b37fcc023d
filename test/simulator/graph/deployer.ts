import { once } from 'node:events'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { localAccountId, localRegion } from '@platform/local/emulators/http/environment'
import { listenAt } from '@platform/local/listening'

/** The RPC server of SST as its components call it during evaluation. */

interface Build {
  bundle: string
  handler: string
}

/** Method → result. Functions are already built, so their folders are used unchanged. */
const methods: Record<string, (input: Build) => unknown> = {
  'Provider.Aws.Bootstrap': () => ({
    version: 5,
    asset: 'simulator-assets',
    state: 'simulator-state',
    assetEcrRegistryId: localAccountId,
    assetEcrUrl: `${localAccountId}.dkr.ecr.${localRegion}.amazonaws.com/simulator`,
  }),
  'Runtime.Build': ({ bundle, handler }) => ({ handler, out: bundle, errors: [], sourcemaps: [] }),
}

export async function startDeployer(): Promise<{ url: string } & AsyncDisposable> {
  // The evaluation may block longer than the default keep-alive timeout.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    void (async () => {
      const { method, params } = (await json(request)) as { method: string; params: [Build] }
      const handle = methods[method]
      const error = `No result is defined for ${method}.`
      response.end(JSON.stringify(handle === undefined ? { error } : { result: handle(params[0]) }))
    })()
  })
  const { port } = await listenAt(server, '127.0.0.1', 0)
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
