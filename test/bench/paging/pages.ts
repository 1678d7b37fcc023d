import { handler as clusters } from '../../../functions/clusters.ts'
import { send } from '../../support/request.ts'
import { atMost, type Goal, hope, type Section } from '../support/section.ts'
import { accepted, getting, newToken } from '../support/tenant.ts'
import { costOf, type PageCost } from './cost.ts'
import type { Fleet } from './fleet.ts'

interface Page {
  filter: string
  place: 'first' | 'middle' | 'last' | 'dearest'
  target: string
}
type Measured = Page & PageCost

const pageSize = 100
const filters = ['', 'status=Healthy', 'status=Offline', 'type=Hypervisor', 'status=Healthy&type=Hypervisor']

/** What pages of a large organisation cost, near both ends and far from them. */
export async function measurePages(fleet: Fleet): Promise<Section> {
  const accessToken = await newToken(fleet.organisationId)
  const pages = [...(await Promise.all(filters.map((filter) => pagesOf(filter, accessToken)))).flat(), dearest]
  const measured: Measured[] = []
  for (const page of pages) measured.push({ ...page, ...(await costOf(clusters, getting(page.target, accessToken))) })
  return {
    title: `Pages of ${fleet.count.toLocaleString('en')} clusters of one organisation`,
    columns: ['filter', 'page', 'calls', 'read units', 'ms', 'answer bytes'],
    rows: measured.map(({ filter, place, calls, readUnits, medianMs, answerBytes }) => {
      return [filter || 'none', place, calls, readUnits, medianMs, answerBytes]
    }),
    goals: goalsOf(measured, fleet.count),
  }
}

const dearest: Page = { filter: '', place: 'dearest', target: '/api/v1/clusters?page=2&pageSize=99' }

async function pagesOf(filter: string, accessToken: string): Promise<Page[]> {
  const targetOf = (page: number) => `/api/v1/clusters?page=${page}&pageSize=${pageSize}${filter && `&${filter}`}`
  const { json } = accepted(await send(clusters, getting(targetOf(1), accessToken)))
  const last = Math.ceil(json.totalCount / pageSize)
  return [
    { filter, place: 'first', target: targetOf(1) },
    { filter, place: 'middle', target: targetOf(Math.ceil(last / 2)) },
    { filter, place: 'last', target: targetOf(last) },
  ]
}

function goalsOf(pages: readonly Measured[], count: number): Goal[] {
  const goals = pages.flatMap(({ filter, place, calls, readUnits }) => {
    const name = `page, ${filter || 'no filter'}, ${place}`
    const units = atMost(`${name}: read units`, readUnits, 10)
    if (filter === '') return [atMost(`${name}: calls`, calls, 2), place === 'dearest' ? hope(units) : units]
    return [atMost(`${name}: calls`, calls, place === 'middle' ? 2 + Math.ceil(count / 7500) : 3)]
  })
  const unfiltered = pages.filter(({ filter }) => filter === '')
  const msOf = (place: Page['place']) => unfiltered.find((page) => page.place === place)?.medianMs ?? 0
  return [...goals, hope(atMost('page, no filter: time of the last, × the first', msOf('last') / msOf('first'), 1.5))]
}
