import { functionNames } from '@platform/core/function-names'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { capabilityOf, grantOf } from '../infra/grant.ts'
import { playBeginnings } from './grants/beginnings.ts'
import { moduleGrants, releaseGrants, unseen } from './grants/module-needs.ts'
import { needsOf } from './grants/needs.ts'
import { playAll } from './grants/play-all.ts'
import { type Stage, startStage } from './grants/stage.ts'
import { type Outcome, statementOf } from './grants/withholding.ts'

/**
 * Least privilege, shown: without any one grant of its role a function keeps somebody from what the platform promises. What
 * modules and updates need is shown in a file of its own.
 */

let stage: Stage
const outcomes: Outcome[] = []
beforeAll(async () => {
  stage = await startStage()
  outcomes.push(...(await playBeginnings(stage.newScene)))
  outcomes.push(...(await playAll(stage, needsOf(stage.peers))))
}, 600_000)
afterAll(() => stage[Symbol.asyncDispose]())

test.each(functionNames)(
  'without any one of its grants %s fails a journey: here, in the files beside for modules and releases, or for a reason',
  (name) => {
    const own = outcomes.filter((outcome) => outcome.name === name)
    const shown = own.filter(({ failure, denials }) => failure !== undefined && denials.length > 0)
    expect(shown.map(({ grant }) => grant)).toEqual(own.map(({ grant }) => grant))
    const beside = [moduleGrants, releaseGrants].flatMap((grants) => grants[name] ?? [])
    const all = [...own.map(({ grant }) => grant), ...beside, ...Object.keys(unseen[name] ?? {})]
    const { statements = [] } = stage.rehearsal.functions.find((each) => each.name === name) ?? {}
    expect([...new Set(all)].toSorted()).toEqual(statements.map(grantOf).toSorted())
  },
)

test('no capability names an action that none of its functions needs', () => {
  const [named, used] = [new Map<string, Set<string>>(), new Map<string, Set<string>>([['messages', askedByAws]])]
  for (const { name, grant } of outcomes) {
    const [, statement] = statementOf(stage.rehearsal, name, grant)
    const key = capabilityOf(grant) ?? grant
    note(named, key, statement.Action)
    note(used, key, stage.rehearsal.cloud.gate.used.get(statement) ?? [])
  }
  const unused = [...named].flatMap(([key, actions]) => [...actions].filter((action) => !used.get(key)?.has(action)))
  expect(unused).toEqual([])
})

/** Lambda looks at a queue when a function becomes its consumer; nothing here does. */
const askedByAws = new Set(['sqs:GetQueueAttributes'])

const note = (into: Map<string, Set<string>>, key: string, actions: Iterable<string>) =>
  into.set(key, new Set([...(into.get(key) ?? []), ...actions]))
