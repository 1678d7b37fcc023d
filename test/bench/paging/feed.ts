import * as keys from '@platform/core/db/keys'
import { newId } from '@platform/core/id'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { newCaller } from '../../support/fixtures.ts'
import { range } from '../support/statistics.ts'
import { writeItems } from './write.ts'

/** The notifications of one user. */
export interface Feed {
  accessToken: string
  count: number
}

const lifeSeconds = 80 * 86_400

/** Writes notifications as they are stored, one a minute; every third is unread. */
export async function writeFeed(environment: Record<string, string>, count: number): Promise<Feed> {
  const caller = await newCaller()
  const { organisationId, userId } = caller
  const ids = range(count).map((index) => newId('notif', Date.now() - (count - index) * 60_000))
  const ttl = Math.floor(Date.now() / 1000) + lifeSeconds
  const entries = ids.map((id, index) => entryItem(keys.feed(organisationId, userId, id), ttl, index % 3 > 0))
  const details = ids.map((id) => Object.assign(degraded(newId('clus'), ttl), keys.notification(organisationId, id)))
  await writeItems(environment, [...entries, ...details])
  return { accessToken: await issueAccessToken({ ...caller, roles: ['OrgAdmin'] }), count }
}

const entryItem = (key: keys.Key, ttl: number, isRead: boolean) => (isRead ? { ...key, ttl, isRead } : { ...key, ttl })

const degraded = (resource: string, ttl: number) => ({
  ttl,
  type: 'ClusterHealthDegraded',
  title: 'Cluster berlin-1 is degraded',
  body: 'It was Healthy before.',
  severity: 'warning',
  resource,
})
