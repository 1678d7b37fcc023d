import { forEachLimit } from '@platform/core/lib/async'
import { ProbeAnswer, probeEvent } from '@platform/core/updates/version-probe'
import { type InstalledRelease, type UpdatePlan } from '@platform/core/updates/record'
import * as z from 'zod'
import { UpdateError, describeError } from './errors.ts'
import { getEvent, type SmokeRequest, smokeRequests } from './smoke-requests.ts'
import { type UpdateWork } from './apply.ts'

const atOnce = 6
/** A function that fails at every other request is found out by all but one of 256 times. */
const repeats = 8

/** Asks every function of a staged release, before anybody else does. Throws `UpdateFailure`. No store calls of its own. */
export async function runSmokeTests(work: UpdateWork, { release }: UpdatePlan): Promise<void> {
  await probeAll(work, release)
  const asked = smokeRequests.filter(({ functionName }) => work.names.includes(functionName))
  await forEachLimit(atOnce, asked, async (request) => {
    for (let count = 0; count < repeats; count++) await smokeRequest(work, release, request)
  })
}

/** Every function says which release it is of. */
export const probeAll = ({ target, names }: UpdateWork, release: InstalledRelease): Promise<void> =>
  forEachLimit(atOnce, names, async (name) => {
    const answer = ProbeAnswer.safeParse(await ask(target, release, name, probeEvent))
    const said = answer.success ? `says that it is of version ${answer.data.version}` : 'does not say its version'
    if (answer.data?.version !== release.version) throw failed(release, name, said)
  })

const GatewayAnswer = z.object({ statusCode: z.number() })

/** Asks a function for what anybody may ask for. */
export async function smokeRequest({ target }: UpdateWork, release: InstalledRelease, request: SmokeRequest) {
  const { functionName, path, status } = request
  const answer = GatewayAnswer.safeParse(await ask(target, release, functionName, getEvent(path)))
  const statusCode = answer.data?.statusCode ?? 500
  const isGood = status === undefined ? statusCode < 500 : statusCode === status
  if (!isGood) throw failed(release, functionName, `answers ${statusCode} to GET ${path}`)
}

/** It is the release that fails, unless its target does not answer either. */
async function ask(target: UpdateWork['target'], release: InstalledRelease, name: string, event: unknown) {
  try {
    return await target.invoke(release, name, event)
  } catch (error) {
    await target.current()
    throw failed(release, name, `fails: ${describeError(error)}`)
  }
}

const failed = ({ version }: InstalledRelease, name: string, what: string) =>
  new UpdateError(`Function ${name} of version ${version} ${what}.`)
