import { conformance, inPlatform, organisationOnRecord } from './act.ts'
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
const onRecord = (promise: string): Act => conformance('On record is', promise)
const job = onRecord('a job that is submitted and cancelled')
const batch = inPlatform(conformance('Work of batches', 'a batch sent again with its key is accepted once'))
const delivery = conformance('Deliveries', 'a redirect is not followed')
const heard = conformance('Deliveries', 'a webhook that is switched off hears nothing of what happens meanwhile')
const tokenUse = inPlatform(conformance('API tokens', 'its use is remembered to the hour, whatever it is used for'))
const added = inPlatform(onRecord('what an administrator adds to it, each by itself'))
const organisations = 'an organisation is created once for each name, and listed; one of them is the platform’s'
const webhook = onRecord('a webhook that is created and deleted')
const provider = inPlatform(onRecord('an identity provider that is configured and removed'))
const relay = onRecord('a relay that enrolls')
const swept = { 'queue:jobs': lost.sweepJobs, 'queue:batches': lost.sweepBatches, 'queue:events': lost.sweepEvents }

const tableFor = (peers: Peers): Table => ({
  health: all(conformance('Health', 'startup answers ok once initialisation is done'), 'table:read'),
  meta: {
    'table:read': conformance(
      'Authentication',
      'access tokens verify with the published keys, which hold no private part',
    ),
    'table:write': tokenUse,
  },
  auth: {
    ...all(onRecord('who signs in and out'), ...change, 'secret:signing-keys'),
    'secret:identity': byDirectory(peers),
  },
  clusters: all(onRecord('a cluster that is registered and removed'), ...change),
  sites: all(onRecord('a site that is created and removed'), ...change),
  'portal-data': {
    'table:read': conformance('The portal’s numbers', 'an answer without news is not sent again'),
    'table:write': conformance('The portal’s numbers', 'a program sees what its token may read'),
  },
  preferences: all(onRecord('a filter that is saved and deleted'), ...change),
  users: all(onRecord('an API token that is created and deleted'), ...change),
  notifications: all(onRecord('notifications that are read'), ...change),
  platform: {
    'table:read': conformance('Tenancy', organisations),
    ...all(organisationOnRecord, 'table:write', 'queue:events'),
  },
  audit: all(added, ...change),
  jobs: { ...all(job, ...change, 'queue:jobs'), 'queue:batches': batch },
  relay: all(relay, ...change, 'secret:signing-keys'),
  webhooks: { ...all(webhook, ...change, 'secret:signing-keys'), 'queue:webhooks': delivery },
  identity: {
    ...all(provider, ...change, 'secret:identity-write'),
    'secret:identity': inPlatform(
      conformance('Identity providers', 'a test tells how far the platform gets with a provider'),
    ),
    'secret:identity-remove': secretGoes,
    'secret:signing-keys': byOpenId(peers),
  },
  'queue/jobs': all(job, ...change, 'messages'),
  'queue/jobs-dead-letter': all(lost.jobBuried, ...change, 'messages'),
  'queue/batches': all(batch, ...change, 'messages'),
  'queue/batches-dead-letter': all(lost.batchBuried, ...change, 'messages'),
  'queue/events': {
    ...all(onRecord('a site that is created and removed'), 'table:read', 'table:write', 'messages'),
    'queue:webhooks': heard,
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
