import { createServer } from 'node:http'
import type { LambdaClient } from '@aws-sdk/client-lambda'
import { startBroker } from '@platform/local/emulators/iot/broker'
import { serveDataPlane } from '@platform/local/emulators/iot/data-plane'
import type { Log } from '@platform/local/log'
import * as z from 'zod'
import { listen } from '../../support/http-server.ts'
import { type Graph, ofType } from '../graph/graph.ts'
import { functionOf, invokeFunction } from './invoke.ts'

const AuthorizerInputs = z.object({ name: z.string(), authorizerFunctionArn: z.string() })
const RuleInputs = z.object({ sql: z.string(), lambdas: z.array(z.object({ functionArn: z.string() })) })

/** Starts the emulated broker of AWS IoT with the deployment's authorizer and rules. Clients connect to `url`. */
export async function startChannel(graph: Graph, lambda: LambdaClient, accessKeyId: string, log: Log) {
  await using resources = new AsyncDisposableStack()
  const [authorizer] = ofType(graph, 'aws:iot/authorizer:Authorizer').map(({ inputs }) =>
    AuthorizerInputs.parse(inputs),
  )
  const rules = ofType(graph, 'aws:iot/topicRule:TopicRule').map(({ inputs }) => {
    const { sql, lambdas } = RuleInputs.parse(inputs)
    return { prefix: /startswith\(clientId, '([^']+)'\)$/.exec(sql)?.[1] ?? '', lambdas }
  })
  const invoke = (arn: string, event: unknown) => {
    const [functionName = '', alias] = functionOf(arn)
    return invokeFunction(lambda, functionName, event, alias)
  }
  const broker = startBroker({
    authorize: (event) => invoke(authorizer?.authorizerFunctionArn ?? '', event),
    onPresence: (event) => {
      const targets = rules.filter(({ prefix }) => event.clientId.startsWith(prefix)).flatMap(({ lambdas }) => lambdas)
      for (const { functionArn } of targets)
        invoke(functionArn, event).catch((error: unknown) => log('a presence event failed', { error }))
    },
    log,
  })
  resources.defer(async () => broker.close())
  const dataPlane = await serveDataPlane(broker, accessKeyId)
  resources.defer(dataPlane.close)
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://broker')
    const isKnown = searchParams.get('x-amz-customauthorizer-name') === authorizer?.name
    const address = request.socket.remoteAddress ?? ''
    if (pathname !== '/mqtt' || !isKnown || !broker.accept(request, socket, head, address)) socket.destroy()
  })
  const { host } = resources.use(await listen(server))
  const started = resources.move()
  return { url: `ws://${host}`, dataPlaneUrl: dataPlane.url, [Symbol.asyncDispose]: () => started.disposeAsync() }
}
