import type { GatewayHandler } from '@platform/http/response'
import { handler as audit } from '../../../functions/audit.ts'
import { handler as jobs } from '../../../functions/jobs.ts'
import { handler as notifications } from '../../../functions/notifications.ts'
import { atMost, type Section } from '../support/section.ts'
import { getting, newToken } from '../support/tenant.ts'
import { costOf, type PageCost } from './cost.ts'
import type { Feed } from './feed.ts'
import type { History } from './history.ts'

const pageSize = 100

interface Listed {
  list: string
  page: string
  handler: GatewayHandler
  target: string
  accessToken: string
  /** The most store calls. */
  calls: number
}

/** What pages of jobs, of the audit trail and of notifications cost, near both ends of the lists and far from them. */
export async function measureLists(history: History, feeds: readonly Feed[]): Promise<Section> {
  const accessToken = await newToken(history.organisationId)
  const pages = [...jobPages(history, accessToken), ...auditPages(history, accessToken), ...feeds.map(feedPage)]
  const measured: (Listed & { cost: PageCost })[] = []
  for (const page of pages) {
    measured.push({ ...page, cost: await costOf(page.handler, getting(page.target, page.accessToken)) })
  }
  return {
    title: 'Pages of jobs, audit entries and notifications',
    columns: ['list', 'page', 'calls', 'read units', 'ms', 'answer bytes'],
    rows: measured.map(({ list, page, cost }) => [
      list,
      page,
      cost.calls,
      cost.readUnits,
      cost.medianMs,
      cost.answerBytes,
    ]),
    goals: measured.map(({ list, page, calls, cost }) => atMost(`${list}, ${page} page: calls`, cost.calls, calls)),
  }
}

function jobPages({ jobs: count }: History, accessToken: string): Listed[] {
  const of = (filter: string, total: number): Listed[] => {
    const last = Math.ceil(total / pageSize)
    const at = (page: string, number: number, calls: number): Listed => ({
      list: `GET /jobs${filter && `, ${filter}`}`,
      page,
      handler: jobs,
      accessToken,
      calls,
      target: `/api/v1/jobs?page=${number}&pageSize=${pageSize}&${filter}`,
    })
    const middle = Math.ceil(last / 2)
    return [at('first', 1, 3), at('middle', middle, 2 + Math.ceil(total / 7500)), at('last', last, 3)]
  }
  return [...of('', count), ...of('status=Failed', count / 5)]
}

function auditPages({ entries: count }: History, accessToken: string): Listed[] {
  const at = (page: string, number: number, filter: string, calls: number): Listed => ({
    list: `GET /platform/audit${filter && `, ${filter}`}`,
    page,
    handler: audit,
    accessToken,
    calls,
    target: `/api/v1/platform/audit?page=${number}&pageSize=${pageSize}&${filter}`,
  })
  const last = count / pageSize
  return [at('first', 1, '', 2), at('middle', last / 2, '', 2), at('last', last, '', 2)].concat(
    at('first', 1, 'action=cluster.update', 2 + Math.ceil(count / 10 / 5000)),
  )
}

const feedPage = ({ count, accessToken }: Feed): Listed => ({
  list: `GET /notifications, of ${count.toLocaleString('en')}`,
  page: 'first',
  handler: notifications,
  target: '/api/v1/notifications',
  accessToken,
  calls: 2,
})
