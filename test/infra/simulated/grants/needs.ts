import { inPlatform, organisationOnRecord } from './act.ts'
import {
  batch,
  delivery,
  eventDelivery,
  extraEntries,
  onRecord,
  organisations,
  providerTest,
  publishedKeys,
  startup,
  summary,
  tokenUse,
} from './conformance.ts'
import * as deliveries from './deliveries.ts'
import * as lost from './lost-messages.ts'
import { secretGoes, sweepSecrets } from './secrets.ts'
import { byDirectory, byOpenId, type Peers } from './sign-in.ts'
import type { Act, Need } from './withholding.ts'

/** Function → grant → the journey that cannot be gone without it. */

type Table = Record<string, Record<string, Act>>

/** The same journey for several grants. */
const all = (act: Act, ...grants: string[]): Record<string, Act> =>
  Object.fromEntries(grants.map((grant) => [grant, act]))

const change = ['table:read', 'table:write', 'queue:events']
const job = onRecord('a submitted and a cancelled job')
const webhook = onRecord('a created and a deleted webhook')
const provider = inPlatform(onRecord('a configured and a removed identity provider'))
const relay = onRecord('an enrolled relay')
const swept = { 'queue:jobs': lost.sweepJobs, 'queue:batches': lost.sweepBatches, 'queue:events': lost.sweepEvents }

const tableFor = (peers: Peers): Table => ({
  health: all(startup, 'table:read'),
  meta: {
    'table:read': publishedKeys,
    'table:write': tokenUse('/api/v1/events/catalog'),
  },
  auth: {
    ...all(onRecord('sign-in and sign-out'), ...change, 'secret:signing-keys'),
    'secret:identity': byDirectory(peers),
  },
  clusters: all(onRecord('a registered and a removed cluster'), ...change),
  sites: all(onRecord('a created and a removed site'), ...change),
  'portal-data': {
    'table:read': summary,
    'table:write': tokenUse('/api/v1/portal/summary'),
  },
  preferences: all(onRecord('a saved and a deleted filter'), ...change),
  users: all(onRecord('a created and a deleted API token'), ...change),
  notifications: all(onRecord('notifications marked as read'), ...change),
  platform: {
    'table:read': organisations,
    ...all(organisationOnRecord, 'table:write', 'queue:events'),
  },
  audit: all(extraEntries, ...change),
  jobs: { ...all(job, ...change, 'queue:jobs'), 'queue:batches': batch },
  relay: all(relay, ...change, 'secret:signing-keys'),
  webhooks: { ...all(webhook, ...change, 'secret:signing-keys'), 'queue:webhooks': delivery },
  identity: {
    ...all(provider, ...change, 'secret:identity-write'),
    'secret:identity': providerTest,
    'secret:identity-remove': secretGoes,
    'secret:signing-keys': byOpenId(peers),
  },
  'queue/jobs': all(job, ...change, 'messages'),
  'queue/jobs-dead-letter': all(lost.jobBuried, ...change, 'messages'),
  'queue/batches': all(batch, ...change, 'messages'),
  'queue/batches-dead-letter': all(lost.batchBuried, ...change, 'messages'),
  'queue/events': {
    ...all(onRecord('a created and a removed site'), 'table:read', 'table:write', 'messages'),
    'queue:webhooks': eventDelivery,
  },
  'queue/webhooks': {
    ...all(delivery, 'table:read', 'table:write', 'secret:signing-keys', 'messages'),
    'queue:webhooks': deliveries.deliveryComesAgain,
    'queue:events': deliveries.goneReceiver,
  },
  'schedule/sweep': {
    ...all(sweepSecrets, 'table:read', 'table:write', 'secret:identity-remove'),
    ...swept,
    'queue:webhooks': deliveries.sweepWebhooks,
  },
})

/** What is shown once the platform is set up; modules and updates stand beside. */
export const needsOf = (peers: Peers): Need[] =>
  Object.entries(tableFor(peers)).flatMap(([name, grants]) =>
    Object.entries(grants).map(([grant, act]) => ({ name, grant, act })),
  )

/** Functions whose journeys are short, and need grants of every kind. */
const short = ['jobs', 'queue/jobs', 'webhooks', 'identity']

/** A need for each kind of grant. */
export function oneOfEach(needs: readonly Need[]): Need[] {
  const byName = short.flatMap((name) => needs.filter((need) => need.name === name))
  return [...Map.groupBy([...byName, ...needs], ({ grant }) => grant).values()].flatMap(([first]) => first ?? [])
}
