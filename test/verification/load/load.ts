import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { newRelayKey, Relay, requestEnrollment } from '../../conformance/support/relay.ts'
import { PlatformProcess } from '../../support/platform.ts'
import { seededRandom } from '../../support/random.ts'
import { runRelayCommand } from '../../support/relay-command.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { seed } from '../support/run.ts'
import { type ClientStats, newAcknowledged, newClientStats } from './records.ts'
import { AbandonedCall, RetryingClient } from './retrying-client.ts'
import { userActions } from './user.ts'

/** Rate limits would hide the faults of the store. */
const withoutRateLimits = Object.fromEntries(
  ['API_PER_MINUTE', 'API_BURST', 'REFRESH_PER_MINUTE', 'ENROLL_PER_MINUTE', 'BATCH_PER_MINUTE']
    .concat(['SIGN_IN_USER_PER_MINUTE', 'SIGN_IN_ADDRESS_PER_MINUTE', 'SIGN_IN_USER_PER_HOUR'])
    .map((name) => [`PLAT_LIMIT_${name}`, '1000000']),
)

interface LoadOptions {
  userCount: number
  pauseMs?: number
  settings?: Record<string, string>
  clockFile?: string
  /** Names of the actions that the users do not perform. */
  omitted?: readonly string[]
}

export async function startLoad({ userCount, pauseMs = 0, settings, clockFile, omitted = [] }: LoadOptions) {
  await using resources = new AsyncDisposableStack()
  const platform = resources.use(
    await PlatformProcess.start(
      { ...withoutRateLimits, ...settings },
      clockFile === undefined ? { withFaults: true } : { clockFile },
    ),
  )
  const folder = resources.use(await temporaryFolder())
  const api = await platform.setUp()
  const [connectedCluster, disconnectedCluster] = [await api.newCluster(), await api.newCluster()]
  const targets = {
    connectedId: connectedCluster.id,
    disconnectedId: disconnectedCluster.id,
    ledger: join(folder.path, 'ledger'),
  }
  const relay = resources.use(runRelayCommand(connectedCluster.relayCommand, folder.path))
  const [stats, acknowledged] = [newClientStats(), newAcknowledged()]
  const anonymous = new RetryingClient(platform.url, api.contract, stats)
  const newUser = async () => ({ anonymous, targets, acknowledged, ...(await createUser(api, anonymous)) })
  const users = (await Promise.all(Array.from({ length: userCount }, newUser))).map((user) =>
    userActions(user).filter(({ name }) => !omitted.includes(name)),
  )
  const begin = () => {
    const stopController = new AbortController()
    const runningUsers = users.map((actions, index) =>
      runActions(actions, stats, seed + index, pauseMs, stopController.signal),
    )
    return async () => {
      stopController.abort()
      await Promise.all(runningUsers)
    }
  }
  const ownedResources = resources.move()
  const dispose = () => ownedResources.disposeAsync()
  return { platform, api, relay, targets, stats, acknowledged, begin, [Symbol.asyncDispose]: dispose }
}

export type Load = Awaited<ReturnType<typeof startLoad>>

async function createUser(api: Platform, anonymous: RetryingClient) {
  const { tokens } = await api.newUser('OrgAdmin')
  const { enrollmentToken } = await api.newCluster()
  const key = newRelayKey()
  const enrolled = expectStatus(await requestEnrollment(anonymous, enrollmentToken, key), 201)
  return { tokens, relay: new Relay(anonymous, key, enrolled) }
}

async function runActions(
  actions: readonly (() => Promise<void>)[],
  stats: ClientStats,
  userSeed: number,
  pauseMs: number,
  signal: AbortSignal,
): Promise<void> {
  const random = seededRandom(userSeed)
  const firstActions = actions.map((action) => ({ action, rank: random() })).toSorted((a, b) => a.rank - b.rank)
  for (let count = 0; count < firstActions.length || !signal.aborted; count++) {
    const action = firstActions[count]?.action ?? actions[Math.floor(random() * actions.length)]
    await action?.().catch((error: unknown) => {
      if (!(error instanceof AbandonedCall)) stats.unexpected.push(String(error))
    })
    if (pauseMs > 0) await delay(pauseMs * random())
  }
}
