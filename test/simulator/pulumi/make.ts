import { isDeepStrictEqual } from 'node:util'
import { stateOf } from '../graph/answers.ts'
import { type Entry } from './checkpoint.ts'
import { type Operation } from './events.ts'

/** What becomes of a resource, given what is remembered of it. */

/** Inputs as the program asks for them, but for those that are to stay as they once were. */
export const keeping = (
  inputs: Record<string, unknown>,
  ignoreChanges: readonly string[],
  old: Entry | undefined,
): Record<string, unknown> => ({
  ...inputs,
  ...Object.fromEntries(ignoreChanges.flatMap((name) => (old && name in old.inputs ? [[name, old.inputs[name]]] : []))),
})

/** These are made anew where others would be changed: what they ask for is an act. */
const acts = new Set(['aws:lambda/invocation:Invocation'])

export function operationFor(inputs: Record<string, unknown>, type: string, old: Entry | undefined): Operation {
  if (old === undefined) return 'create'
  if (isDeepStrictEqual(old.inputs, inputs)) return 'same'
  return acts.has(type) ? 'replace' : 'update'
}

const failure = process.env['ENGINE_INVOCATION_ERROR']

/** The state of a resource that is made or changed; throws as the provider does where it cannot be. */
export function made(asked: { type: string; name: string; inputs: Record<string, unknown> }, old: Entry | undefined) {
  const { type, inputs } = asked
  if (type === 'aws:lambda/invocation:Invocation' && failure) {
    throw new Error(`invoking Lambda Function (${String(inputs['functionName'])}): ${failure}`)
  }
  const state = stateOf(asked)
  if (type !== 'aws:lambda/function:Function') return state
  // With each change there is one more.
  const version = String(Number(old?.outputs['version'] ?? 0) + 1)
  return { ...state, version, qualifiedArn: `${String(state['arn'])}:${version}` }
}
