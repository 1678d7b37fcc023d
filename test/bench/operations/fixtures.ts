import { validRequest, toRequest } from '../../functions/fixtures.ts'
import { password, type SignedInUser, newUser } from '../../functions/users.ts'
import { type Operation, operationNamed, operations } from '../../functions/operations.ts'
import { jsonRequest, send, type TestRequest } from '../../support/request.ts'
import { metered } from '../support/meter.ts'
import { accepted } from '../support/tenant.ts'
import { lifecycleBudgets } from './budgets.ts'
import { type Count, operationOf } from './count.ts'

/** Setup is done once, and these ask an identity provider that nobody plays here. */
const left = /^(?:GET|POST) \/(?:setup\/|auth\/oidc\/|platform\/identity\/consent-callback)/
/** Counted beside a module that runs. */
const ofModules = /^GET \/(?:modules|modules\/catalog|portal\/navigation|portal\/summary)$/

/** What was counted, and the names of what was not. */
export interface Others {
  counts: Count[]
  left: string[]
  /** How many operations there are. */
  all: number
}

/** Operations that the lifecycle does not come by, each by its fixture; the second request of each, in a warm process. */
export async function countFixtures(): Promise<Others> {
  const counts: Count[] = []
  const others = operations.filter((row) => isCountedHere(operationOf(row.name)))
  for (const row of others) {
    await countOne(row)
    counts.push(await countOne(row))
  }
  const names = operations.map(({ name }) => operationOf(name))
  return { counts, left: names.filter((name) => left.test(name)), all: names.length }
}

const isCountedHere = (operation: string): boolean =>
  !left.test(operation) &&
  !ofModules.test(operation) &&
  !Object.keys(lifecycleBudgets).some((name) => name === operation || name.startsWith(`${operation}, `))

async function countOne(row: Operation): Promise<Count> {
  const sent = await sentBy(row, await newUser('PlatformAdmin'))
  const { result, usage } = await metered(() => send(row.handler, sent))
  return { operation: operationOf(row.name), usage, answerBytes: Buffer.byteLength(accepted(result).text) }
}

const sentBy = async (row: Operation, who: SignedInUser): Promise<TestRequest> =>
  row.endpoint.access === 'public' ? openly(row, who) : toRequest(row, await validRequest(row, who), who.headers)

/** What needs no token: some sign in, some read what everybody may. */
async function openly(row: Operation, who: SignedInUser): Promise<TestRequest> {
  const { method } = row
  const { path } = row.endpoint
  if (path === '/api/v1/auth/local-login') return signIn(path, who)
  if (!path.startsWith('/api/v1/auth/session')) return { target: path }
  const beginning = signIn('/api/v1/auth/session', who)
  if (row.name === 'POST /api/v1/auth/session') return beginning
  const { cookies } = accepted(await send(operationNamed('POST /api/v1/auth/session').handler, beginning))
  const cookie = cookies.map((each) => each.split(';')[0]).join('; ')
  return { method, target: path, headers: { ...sameOrigin, cookie } }
}

const sameOrigin = { 'sec-fetch-site': 'same-origin' }
const signIn = (target: string, { username }: SignedInUser): TestRequest =>
  jsonRequest(target, { username, password }, sameOrigin)
