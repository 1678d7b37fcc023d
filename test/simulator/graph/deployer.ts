import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { listen } from '../../support/http-server.ts'
import { bootstrapParameters } from './answers.ts'

/** Emulates the methods of the SST RPC server that SST components call during evaluation. */

interface Build {
  bundle: string
  handler: string
}

/** Method → result. Functions are already built, so their folders are used unchanged. */
const methods: Record<string, (input: Build) => unknown> = {
  'Provider.Aws.Bootstrap': () => bootstrapParameters,
  'Runtime.Build': ({ bundle, handler }) => ({ handler, out: bundle, errors: [], sourcemaps: [] }),
}

export async function startDeployer() {
  // The evaluation may block longer than the default keep-alive timeout.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    void (async () => {
      const { method, params } = (await json(request)) as { method: string; params: [Build] }
      const handle = methods[method]
      const error = `No result is defined for ${method}.`
      response.end(JSON.stringify(handle === undefined ? { error } : { result: handle(params[0]) }))
    })()
  })
  return listen(server)
}
