import { functionNames } from '@platform/core/updates/function-names'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { capabilityOf, grantOf } from '../grant.ts'
import { isLong, sampled } from '../../support/long.ts'
import { beginningNeeds, playBeginnings } from './grants/beginnings.ts'
import { moduleGrants, releaseGrants, unseen } from './grants/module-needs.ts'
import { needsOf, oneOfEach } from './grants/needs.ts'
import { playAll } from './grants/play-all.ts'
import { type Stage, startStage } from './grants/stage.ts'
import { isMissed, type Need, type Outcome, statementOf } from './grants/withholding.ts'

/**
 * Least privilege, shown: without any one grant of its role a function keeps somebody from what the platform promises. What
 * modules and updates need is shown in a file of its own. By default every twelfth kind of grant is taken away, from one function.
 */

let stage: Stage
let needs: readonly Need[]
const outcomes: Outcome[] = []
beforeAll(async () => {
  stage = await startStage()
  const later = needsOf(stage.peers)
  needs = [...beginningNeeds, ...later]
  const laterGrants = new Set(later.map(({ grant }) => grant))
  outcomes.push(...(await playBeginnings(stage.newScene, (grant) => isLong || !laterGrants.has(grant))))
  outcomes.push(...(await playAll(stage, isLong ? later : sampled(oneOfEach(later), 12))))
}, 600_000)
afterAll(() => stage[Symbol.asyncDispose]())

test.each(functionNames)(
  'without any one of its grants %s fails a journey: here, in the files beside for modules and releases, or for a reason',
  (name) => {
    const made = outcomes.filter((outcome) => outcome.name === name && !isMissed(outcome))
    expect(made.map(({ grant, act, failure, denials }) => ({ grant, act: act.title, failure, denials }))).toEqual([])
    const here = needs.filter((need) => need.name === name).map(({ grant }) => grant)
    const beside = [moduleGrants, releaseGrants].flatMap((grants) => grants[name] ?? [])
    const all = new Set([...here, ...beside, ...Object.keys(unseen[name] ?? {})])
    const { statements = [] } = stage.simulator.functions.find((each) => each.name === name) ?? {}
    expect([...all].toSorted()).toEqual(statements.map(grantOf).toSorted())
  },
)

test.runIf(isLong)('every grant has been taken away', () => {
  expect(outcomes.map(named)).toEqual(needs.map(named))
})

test.runIf(isLong)('no capability names an action that none of its functions needs', () => {
  const [named, used] = [new Map<string, Set<string>>(), new Map<string, Set<string>>([['messages', askedByAws]])]
  for (const { name, grant } of outcomes) {
    const [, statement] = statementOf(stage.simulator, name, grant)
    const key = capabilityOf(grant) ?? grant
    note(named, key, statement.Action)
    note(used, key, stage.simulator.cloud.gate.used.get(statement) ?? [])
  }
  const unused = [...named].flatMap(([key, actions]) => [...actions].filter((action) => !used.get(key)?.has(action)))
  expect(unused).toEqual([])
})

const named = ({ name, grant }: Need) => `${name} ${grant}`

/** Lambda looks at a queue when a function becomes its consumer; nothing here does. */
const askedByAws = new Set(['sqs:GetQueueAttributes'])

const note = (into: Map<string, Set<string>>, key: string, actions: Iterable<string>) =>
  into.set(key, new Set([...(into.get(key) ?? []), ...actions]))
