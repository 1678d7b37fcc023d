import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import {
  CreateFunctionCommand,
  type CreateFunctionCommandInput,
  InvokeCommand,
  LambdaClient,
  waitUntilFunctionActiveV2,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { type LambdaOptions, startLambda } from './start.ts'
import { buildImage, type ImageToBuild } from '@platform/oci/build'
import { pushImage } from '@platform/oci/push'
import { onTestFinished } from 'vitest'
import { memoryRegistry } from '../../support/memory-registry.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

export const role = 'arn:aws:iam::000000000000:role/modules'
const program = fileURLToPath(new URL('program.ts', import.meta.url))

export async function serveLambda(options: LambdaOptions = {}) {
  const folder = await temporaryFolder()
  const registry = memoryRegistry('registry.test')
  const images = { registry: () => registry, storeDir: folder.path }
  const lambda = await startLambda({ images, settleMs: 0, ...options })
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const client = new LambdaClient({ endpoint: lambda.url, region: 'eu-central-1', credentials, maxAttempts: 1 })
  onTestFinished(async () => {
    client.destroy()
    await lambda.close()
    await folder[Symbol.asyncDispose]()
  })

  const push = async (image: Partial<ImageToBuild> = {}, repository = 'modules/echo') => {
    const config = { Entrypoint: ['node', '/app/main.ts'], WorkingDir: '/app' }
    const files = [{ path: 'app/main.ts', source: program }]
    const { digest } = await pushImage(registry, repository, await buildImage({ files, config, ...image }), [])
    return `registry.test/${repository}@${digest}`
  }
  const create = async (input: Partial<CreateFunctionCommandInput> = {}) =>
    client.send(new CreateFunctionCommand({ ...imageFunction(await push()), ...input }))
  const active = async (input: Partial<CreateFunctionCommandInput> = {}) => {
    const made = await create(input)
    await settled(client, made.FunctionName)
    return made
  }
  const dropLayers = async (uri: string) => {
    const { content } = (await registry.manifest('modules/echo', uri.split('@')[1] ?? '')) ?? {}
    const layers = content !== undefined && 'layers' in content ? content.layers : []
    for (const { digest } of layers) registry.blobs.delete(`modules/echo ${digest}`)
  }
  return { lambda, client, registry, folder: folder.path, push, create, active, dropLayers }
}

const architecture = process.arch === 'arm64' ? 'arm64' : 'x86_64'

export const imageFunction = (ImageUri: string): CreateFunctionCommandInput => ({
  FunctionName: 'echo',
  PackageType: 'Image',
  Code: { ImageUri },
  Role: role,
  Architectures: [architecture],
})

export async function settled(client: LambdaClient, FunctionName = 'echo'): Promise<void> {
  const often = { client, minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 20 }
  await waitUntilFunctionActiveV2(often, { FunctionName })
  await waitUntilFunctionUpdatedV2(often, { FunctionName })
}

export async function invoke(
  client: LambdaClient,
  event: object,
  name: { Qualifier?: string; FunctionName?: string } = {},
) {
  const Payload = Buffer.from(JSON.stringify(event))
  const answer = await client.send(new InvokeCommand({ FunctionName: 'echo', ...name, Payload }))
  const { FunctionError: error, ExecutedVersion: version } = answer
  const said = JSON.parse(Buffer.from(answer.Payload ?? []).toString())
  return { error, version, said, result: said.result }
}

export async function rejectionOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (error) {
    return (error as Error).name
  }
  return 'no error'
}

/** A server that holds requests of functions until a test releases them. */
export async function waitingRoom() {
  const waiting: (() => void)[] = []
  const server = createServer((_, response) => {
    waiting.push(() => response.end())
    server.emit('arrival')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => server.close().closeAllConnections())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    has: async (count: number) => {
      while (waiting.length < count) await once(server, 'arrival')
    },
    leave: () => {
      for (const go of waiting.splice(0)) go()
    },
  }
}
