import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { resolveData, stateOf } from '../graph/answers.ts'
import type { Entry, Stack } from './checkpoint.ts'
import type { Events, Operation } from './events.ts'

export interface Program {
  file: string
  stack: Stack
  isPreview: boolean
}

export interface Outcome {
  entries: Entry[]
  isSuccessful: boolean
}

const call = ({ token, inputs }: { token: string; inputs: Record<string, unknown> }) => resolveData(token, inputs)

/** Runs a program and registers its resources. A failed resource keeps its previous state. */
export async function evaluate(
  { file, stack, isPreview }: Program,
  checkpoint: readonly Entry[],
  events: Events,
): Promise<Outcome> {
  // Loads the copy of the library that the program uses.
  const load = createRequire(file)
  const { runtime } = load('@pulumi/pulumi')
  const { MockMonitor } = load('@pulumi/pulumi/runtime/mocks')
  const { setMockOptions } = load('@pulumi/pulumi/runtime/settings')
  const current = new Map<string, Entry>()
  let isSuccessful = true
  const fail = (urn: string, error: unknown): void => {
    // Report an error without a resource only if it is the first error: later ones are its consequences.
    if (urn !== '' || isSuccessful) events.failed(urn, error instanceof Error ? error.message : String(error))
    isSuccessful = false
  }
  const [organisation, project, stage] = stack
  await runtime.setMocks({ call }, project, stage, isPreview, organisation)
  const monitor = new MockMonitor({ call })
  setMockOptions(monitor, project, stage, isPreview, organisation)
  const oldEntries = new Map(checkpoint.map((entry) => [entry.urn, entry]))
  const register = registrar(load, (urn) => oldEntries.get(urn), events)
  monitor.registerResource = async (request: any, callback: any) => {
    const urn = monitor.newUrn(request.getParent(), request.getType(), request.getName())
    try {
      const { entry, response } = await register(urn, request)
      current.set(urn, entry)
      callback(null, response)
    } catch (error) {
      fail(urn, error)
      callback(error)
    }
  }
  monitor.registerResourceOutputs = (request: any, callback: any) => {
    const entry = current.get(request.getUrn())
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
  return { entries: remainingEntries(checkpoint, current, events, isSuccessful), isSuccessful }
}

function remainingEntries(
  oldEntries: readonly Entry[],
  current: ReadonlyMap<string, Entry>,
  events: Events,
  isSuccessful: boolean,
): Entry[] {
  const removedEntries = oldEntries.filter(({ urn }) => !current.has(urn))
  if (!isSuccessful) return [...current.values(), ...removedEntries]
  for (const entry of removedEntries) events.done('delete', entry, entry)
  return [...current.values()]
}

function registrar(load: NodeJS.Require, oldEntryOf: (urn: string) => Entry | undefined, events: Events) {
  const rpc = load('@pulumi/pulumi/runtime/rpc')
  const { RegisterResourceResponse } = load('@pulumi/pulumi/proto/resource_pb')
  const { Struct } = load('google-protobuf/google/protobuf/struct_pb')
  return async (urn: string, request: any) => {
    const oldEntry = oldEntryOf(urn)
    const [type, name, custom] = [request.getType(), request.getName(), request.getCustom()]
    const inputs = withIgnoredChanges(
      request.getObject()?.toJavaScript() ?? {},
      request.getIgnorechangesList(),
      oldEntry,
    )
    const operation = operationFor(inputs, type, oldEntry)
    const entry: Entry = { urn, type, custom, inputs, outputs: oldEntry?.outputs ?? {}, ...optionsOf(request) }
    if (custom) entry.id = oldEntry?.id ?? `${name}-id`
    events.started(operation, entry, oldEntry)
    if (operation !== 'same' && custom) {
      const plainInputs = rpc.deserializeProperties(Struct.fromJavaScript(inputs))
      entry.outputs = await rpc.serializeProperties('', stateAfter({ type, name, inputs: plainInputs }, oldEntry))
    }
    events.done(operation, entry, oldEntry)
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

const withIgnoredChanges = (
  inputs: Record<string, unknown>,
  ignoreChanges: readonly string[],
  old: Entry | undefined,
): Record<string, unknown> => ({
  ...inputs,
  ...Object.fromEntries(ignoreChanges.flatMap((name) => (old && name in old.inputs ? [[name, old.inputs[name]]] : []))),
})

/** Types that perform an action: changed resources are replaced instead of updated. */
const actionTypes = new Set(['aws:lambda/invocation:Invocation'])

function operationFor(inputs: Record<string, unknown>, type: string, old: Entry | undefined): Operation {
  if (old === undefined) return 'create'
  if (isDeepStrictEqual(old.inputs, inputs)) return 'same'
  return actionTypes.has(type) ? 'replace' : 'update'
}

const failure = process.env['ENGINE_INVOCATION_ERROR']

function stateAfter(resource: { type: string; name: string; inputs: Record<string, unknown> }, old: Entry | undefined) {
  const { type, inputs } = resource
  if (type === 'aws:lambda/invocation:Invocation' && failure) {
    throw new Error(`invoking Lambda Function (${String(inputs['functionName'])}): ${failure}`)
  }
  const state = stateOf(resource)
  if (type !== 'aws:lambda/function:Function') return state
  // Each change of a function publishes a version.
  const version = String(Number(old?.outputs['version'] ?? 0) + 1)
  return { ...state, version, qualifiedArn: `${String(state['arn'])}:${version}` }
}
