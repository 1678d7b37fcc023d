import { shiftClock } from '@platform/core/clock'
import { tokenOf } from '@platform/worker/runtimes/token'
import { handler as gateway } from '../../../functions/gateway/modules.ts'
import { handler as webhooks } from '../../../functions/webhooks.ts'
import { deploymentOf, putModule, releaseFor } from '../../core/support/modules.ts'
import { jsonRequest } from '../../support/request.ts'
import { helloManifest, startHello } from '../modules/hello.ts'
import { bearer, getting, newToken, type Tenant } from '../support/tenant.ts'
import { newFlow, request } from './call.ts'
import { type Flows, measure, newRelay, renaming } from './flows.ts'
import { settle } from './messages.ts'

/** How long a function believes what it has read of where modules run, with a margin. */
const believedMs = 1100

/** A change that one webhook hears: compare it with one that nobody hears. */
export async function webhookFlows({ accessToken }: Tenant, host: string): Promise<Flows> {
  const { clusterId } = await newRelay(newFlow(), accessToken)
  const body = { url: `http://${host}/hook`, events: ['*'] }
  const { json } = await request(
    newFlow(),
    'webhooks',
    webhooks,
    jsonRequest('/api/v1/webhooks', body, bearer(accessToken)),
  )
  await settle(newFlow())
  await renaming(clusterId, accessToken)
  const heard = await renaming(clusterId, accessToken)
  const removal = { ...getting(`/api/v1/webhooks/${json.id}`, accessToken), method: 'DELETE' }
  await request(newFlow(), 'webhooks', webhooks, removal)
  await settle(newFlow())
  return { 'a change that one webhook hears': heard }
}

/** A request to the reference module, by a function that has to look where it runs. */
export async function moduleFlows({ organisationId }: Tenant): Promise<Flows> {
  const release = releaseFor('hello', { manifest: await helloManifest() })
  const deployment = deploymentOf(release)
  await using hello = await startHello(await tokenOf(deployment.id))
  await putModule(release, { deployment: { ...deployment, handle: hello.socket } })
  const accessToken = await newToken(organisationId)
  const ask = () => measure((flow) => request(flow, 'gateway/modules', gateway, getting('/api/hello', accessToken)))
  await ask()
  shiftClock(believedMs)
  const asked = await ask()
  shiftClock(-believedMs)
  return { 'a call of a module': asked }
}
