import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { resolveData } from '../graph/answers.ts'
import { type Entry, type Stack } from './checkpoint.ts'
import { type Events } from './events.ts'
import { keeping, made, operationFor } from './make.ts'

export interface Program {
  file: string
  stack: Stack
  isPreview: boolean
}

export interface Outcome {
  entries: Entry[]
  isFine: boolean
}

const call = ({ token, inputs }: { token: string; inputs: Record<string, unknown> }) => resolveData(token, inputs)

/** A failed resource keeps its previous state. */
export async function evaluate(
  { file, stack, isPreview }: Program,
  before: readonly Entry[],
  events: Events,
): Promise<Outcome> {
  // The program's own copy of the library.
  const load = createRequire(file)
  const { runtime } = load('@pulumi/pulumi')
  const { MockMonitor } = load('@pulumi/pulumi/runtime/mocks')
  const { setMockOptions } = load('@pulumi/pulumi/runtime/settings')
  const now = new Map<string, Entry>()
  let isFine = true
  const fail = (urn: string, error: unknown): void => {
    // Errors that follow from a failure add nothing.
    if (urn !== '' || isFine) events.failed(urn, error instanceof Error ? error.message : String(error))
    isFine = false
  }
  const [organisation, project, stage] = stack
  await runtime.setMocks({ call }, project, stage, isPreview, organisation)
  const monitor = new MockMonitor({ call })
  setMockOptions(monitor, project, stage, isPreview, organisation)
  const old = new Map(before.map((entry) => [entry.urn, entry]))
  const register = registrar(load, (urn) => old.get(urn), events)
  monitor.registerResource = async (request: any, callback: any) => {
    const urn = monitor.newUrn(request.getParent(), request.getType(), request.getName())
    try {
      const { entry, response } = await register(urn, request)
      now.set(urn, entry)
      callback(null, response)
    } catch (error) {
      fail(urn, error)
      callback(error)
    }
  }
  monitor.registerResourceOutputs = (request: any, callback: any) => {
    const entry = now.get(request.getUrn())
    if (entry !== undefined) entry.outputs = request.getOutputs()?.toJavaScript() ?? {}
    callback(null, {})
  }
  process.on('unhandledRejection', (error) => fail('', error)).on('uncaughtException', (error) => fail('', error))
  try {
    await runtime.runInPulumiStack(async () => (await import(pathToFileURL(file).href)).default)
    await runtime.waitForRPCs()
  } catch (error) {
    fail('', error)
  }
  return { entries: remaining(before, now, events, isFine), isFine }
}

/** Removes resources that the program no longer requests, after everything else. */
function remaining(
  before: readonly Entry[],
  now: ReadonlyMap<string, Entry>,
  events: Events,
  isFine: boolean,
): Entry[] {
  const gone = before.filter(({ urn }) => !now.has(urn))
  if (!isFine) return [...now.values(), ...gone]
  for (const entry of gone) events.done('delete', entry, entry)
  return [...now.values()]
}

/** Registers a resource like the engine: new, changed or unchanged. */
function registrar(load: NodeJS.Require, before: (urn: string) => Entry | undefined, events: Events) {
  const rpc = load('@pulumi/pulumi/runtime/rpc')
  const { RegisterResourceResponse } = load('@pulumi/pulumi/proto/resource_pb')
  const { Struct } = load('google-protobuf/google/protobuf/struct_pb')
  return async (urn: string, request: any) => {
    const old = before(urn)
    const [type, name, custom] = [request.getType(), request.getName(), request.getCustom()]
    const inputs = keeping(request.getObject()?.toJavaScript() ?? {}, request.getIgnorechangesList(), old)
    const operation = operationFor(inputs, type, old)
    const entry: Entry = { urn, type, custom, inputs, outputs: old?.outputs ?? {}, ...optionsOf(request) }
    if (custom) entry.id = old?.id ?? `${name}-id`
    events.begun(operation, entry, old)
    if (operation !== 'same' && custom) {
      const plain = rpc.deserializeProperties(Struct.fromJavaScript(inputs))
      entry.outputs = await rpc.serializeProperties('', made({ type, name, inputs: plain }, old))
    }
    events.done(operation, entry, old)
    const response = new RegisterResourceResponse()
    response.setUrn(urn)
    response.setId(entry.id ?? '')
    response.setObject(Struct.fromJavaScript(entry.outputs))
    return { entry, response }
  }
}

const optionsOf = (request: any) => ({
  dependencies: request.getDependenciesList(),
  ...(request.getParent() && { parent: request.getParent() }),
  ...(request.getProtect() && { protect: true }),
  ...(request.getRetainondelete() && { retainOnDelete: true }),
})
