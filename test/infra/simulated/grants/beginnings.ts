import { expectStatus } from '../../../conformance/support/answer.ts'
import { entriesOf } from '../../../conformance/support/audit.ts'
import type { Client } from '../../../conformance/support/client.ts'
import { completeSetupPath, setupBody } from '../../../conformance/support/setup.ts'
import { setupIsOpen, startup } from './conformance.ts'
import { type Act, type Need, type Outcome, played, playWithout, type Scene } from './withholding.ts'

/** What happens once on a platform, in this order: it begins, with a deployment, and is set up. */

const begins: Act = {
  title: 'a deployment begins the platform',
  play: async (scene) => {
    await scene.simulator.begin()
    await startup.play(scene)
  },
}

const beginsAgain: Act = { ...begins, title: 'a second deployment finds the initial admin token that it shall keep' }

/** Completes setup; calls as the administrator. */
async function complete({ platform, simulator }: Scene): Promise<Client> {
  const { anonymous, options } = platform
  const body = { ...setupBody(options), initialAdminToken: await simulator.initialAdminToken() }
  return anonymous.withToken(expectStatus(await anonymous.post(completeSetupPath, body), 200).accessToken)
}

const completes: Act = {
  title: 'completing setup signs the administrator in',
  play: async (scene) => {
    expectStatus(await (await complete(scene)).get('/api/v1/auth/me'), 200)
  },
}

const isOnRecord: Act = {
  title: 'the completion of setup is on record',
  play: async (scene) => {
    await entriesOf(await complete(scene), 'action=setup.complete', 1)
  },
  again: async ({ platform }) => {
    await entriesOf(await platform.admin, 'action=setup.complete', 1)
  },
}

/** Act → the grants of a function that it needs, in the order in which it first needs them. */
const order: readonly [name: string, act: Act, grants: readonly string[]][] = [
  [
    'bootstrap',
    begins,
    [
      'secret:signing-keys',
      'secret:signing-keys-write',
      'table:write',
      'table:read',
      'secret:initial-admin-token-write',
    ],
  ],
  ['bootstrap', beginsAgain, ['secret:initial-admin-token']],
  ['setup', setupIsOpen, ['table:read']],
  ['setup', completes, ['table:write', 'secret:signing-keys']],
  ['setup', isOnRecord, ['queue:events']],
]

/** What `playBeginnings` shows. */
export const beginningNeeds: readonly Need[] = order.flatMap(([name, act, grants]) =>
  grants.map((grant) => ({ name, grant, act })),
)

/**
 * Plays them without each grant that is to be shown, and then with all. Those of them that passed in the end have an outcome.
 */
export async function playBeginnings(
  newScene: () => Promise<Scene>,
  isShown: (grant: string) => boolean,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const [name, act, grants] of order) {
    // The last act is the one that completes setup for all that follow.
    const shown = grants.filter((grant) => act === isOnRecord || isShown(grant))
    for (const grant of shown) outcomes.push(await playWithout(await newScene(), { name, grant, act }))
    if (act === completes) continue
    const last = await played(await newScene(), { ...act, play: act.again ?? act.play })
    if (last !== undefined) throw new Error(`"${act.title}" fails with all grants: ${last}`)
  }
  return outcomes
}
