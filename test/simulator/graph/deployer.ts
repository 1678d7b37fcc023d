import { once } from 'node:events'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { localAccountId, localRegion } from '@platform/local/emulators/http/environment'
import { listenAt } from '@platform/local/listening'

/** The deployer's own process as the components ask it while they are evaluated. */

interface Build {
  bundle: string
  handler: string
}

/** What is asked for → its answer. Functions are built before: their folders are taken as they are. */
const answers: Record<string, (input: Build) => unknown> = {
  'Provider.Aws.Bootstrap': () => ({
    version: 5,
    asset: 'rehearsal-assets',
    state: 'rehearsal-state',
    assetEcrRegistryId: localAccountId,
    assetEcrUrl: `${localAccountId}.dkr.ecr.${localRegion}.amazonaws.com/rehearsal`,
  }),
  'Runtime.Build': ({ bundle, handler }) => ({ handler, out: bundle, errors: [], sourcemaps: [] }),
}

/** Starts it on loopback. Answers its URL, and closes it when it is disposed. */
export async function startDeployer(): Promise<{ url: string } & AsyncDisposable> {
  // It is asked from its own process, which may be busy for longer than a connection rests by default, and finds it closed.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    void (async () => {
      const { method, params } = (await json(request)) as { method: string; params: [Build] }
      const answer = answers[method]
      const known = answer === undefined ? { error: `Nothing here answers ${method}.` } : { result: answer(params[0]) }
      response.end(JSON.stringify(known))
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
