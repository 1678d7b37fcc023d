import { answered } from '../../../conformance/support/answer.ts'
import { entriesOf } from '../../../conformance/support/audit.ts'
import { conformance } from './act.ts'
import { type Act, type Need, type Outcome, played, playWithout, type Scene } from './withholding.ts'

/** What happens once on a platform, in this order: it begins, with a deployment, and is set up. */

const startup = conformance('Health', 'startup answers ok once initialisation is done')

const begins: Act = {
  title: 'a deployment begins the platform',
  play: async (scene) => {
    await scene.rehearsal.begin()
    await startup.play(scene)
  },
}

const beginsAgain: Act = { ...begins, title: 'a second deployment finds the initial admin token that it shall keep' }

const isOpen = conformance('Setup', 'before: the status names the step of the wizard')
const completes = conformance(
  'Setup',
  'before: a refused field leaves the token good, and completing setup signs the administrator in',
)

const isOnRecord: Act = {
  title: 'the completion of setup is on record',
  play: async ({ platform: { anonymous, options } }) => {
    const body = {
      platformName: 'Rehearsal',
      publicUrl: 'https://platform.example.com',
      timezone: 'Europe/Berlin',
      adminUsername: options.username,
      adminEmail: 'admin@example.com',
      adminPassword: options.password,
      initialAdminToken: options.initialAdminToken,
    }
    const { accessToken } = answered(await anonymous.post('/api/v1/setup/complete', body), 200)
    await entriesOf(anonymous.withToken(accessToken), 'action=setup.complete', 1)
  },
  again: conformance('Setup', 'after: it is on record').play,
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
  ['setup', isOpen, ['table:read']],
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
