import { isDeepStrictEqual } from 'node:util'
import { stateOf } from '../graph/answers.ts'
import { type Entry } from './checkpoint.ts'
import { type Operation } from './events.ts'

/** Inputs, except those that must keep their earlier values. */
export const keeping = (
  inputs: Record<string, unknown>,
  ignoreChanges: readonly string[],
  old: Entry | undefined,
): Record<string, unknown> => ({
  ...inputs,
  ...Object.fromEntries(ignoreChanges.flatMap((name) => (old && name in old.inputs ? [[name, old.inputs[name]]] : []))),
})

/** Resources that are replaced where others would be updated: they perform an action. */
const acts = new Set(['aws:lambda/invocation:Invocation'])

export function operationFor(inputs: Record<string, unknown>, type: string, old: Entry | undefined): Operation {
  if (old === undefined) return 'create'
  if (isDeepStrictEqual(old.inputs, inputs)) return 'same'
  return acts.has(type) ? 'replace' : 'update'
}

const failure = process.env['ENGINE_INVOCATION_ERROR']

/** The state of a created or updated resource; throws where the provider would fail. */
export function made(asked: { type: string; name: string; inputs: Record<string, unknown> }, old: Entry | undefined) {
  const { type, inputs } = asked
  if (type === 'aws:lambda/invocation:Invocation' && failure) {
    throw new Error(`invoking Lambda Function (${String(inputs['functionName'])}): ${failure}`)
  }
  const state = stateOf(asked)
  if (type !== 'aws:lambda/function:Function') return state
  // Each change publishes a version.
  const version = String(Number(old?.outputs['version'] ?? 0) + 1)
  return { ...state, version, qualifiedArn: `${String(state['arn'])}:${version}` }
}
