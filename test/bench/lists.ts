import { send } from '../support/request.ts'
import { metered, storeCallsOf } from './support/meter.ts'
import { expectSuccess, getRequest } from './support/requests.ts'
import { atMost, type Effort, type Goal, type Section, target } from './support/section.ts'
import { range, spread } from './support/statistics.ts'
import { writeFleet, writeHistory } from './support/stored-data.ts'
import { handlerFor, newToken, setUp } from './support/tenant.ts'

const pageSize = 100

interface Page {
  list: string
  position: string
  functionName: string
  path: string
  accessToken: string
  maxCalls: number
  maxReadUnits?: number
}

export async function* measureLists(environment: Record<string, string>, { isQuick }: Effort): AsyncGenerator<Section> {
  await setUp()
  const [clusters, jobs, entries] = isQuick ? [10_000, 10_000, 2000] : [100_000, 100_000, 20_000]
  const fleet = await writeFleet(environment, clusters)
  const ofFleet = await newToken(fleet.organisationId)
  const ofHistory = await newToken(await writeHistory(environment, jobs, entries))
  const clusterId = fleet.clusterIds[clusters / 2]
  yield await sectionFor([
    { ...page('clusters', `/clusters/${clusterId}`, ofFleet, 1), position: 'one', maxReadUnits: 2 },
    ...pages('clusters', '/clusters', ofFleet, clusters, 2).map((each) => ({ ...each, maxReadUnits: 10 })),
    ...pages('clusters', '/clusters?status=Healthy', ofFleet, clusters * 0.9, 3),
    ...pages('clusters', '/clusters?type=Hypervisor', ofFleet, clusters / 2, 3),
    ...pages('clusters', '/clusters?status=Healthy&type=Hypervisor', ofFleet, clusters * 0.45, 3),
    page('clusters', '/clusters?search=cluster-0000', ofFleet, 1 + Math.ceil(clusters / 8000)),
    ...pages('jobs', '/jobs', ofHistory, jobs, 3),
    ...pages('jobs', '/jobs?status=Failed', ofHistory, jobs / 5, 3),
    ...pages('audit', '/platform/audit', ofHistory, entries, 2),
    page('audit', '/platform/audit?action=cluster.update', ofHistory, 2 + Math.ceil(entries / 50_000)),
  ])
}

const page = (functionName: string, path: string, accessToken: string, maxCalls: number): Page => ({
  list: `GET ${path}`,
  position: 'first',
  functionName,
  path: `/api/v1${path}`,
  accessToken,
  maxCalls,
})

/** The first, middle and last page. The middle page of a list without offsets reads the index from the nearer end. */
function pages(functionName: string, path: string, accessToken: string, count: number, maxCalls: number): Page[] {
  const last = Math.ceil(count / pageSize)
  const hasOffsets = maxCalls === 2
  const middleCalls = hasOffsets ? maxCalls : 2 + Math.ceil(count / 7500)
  const positions = { first: 1, middle: Math.ceil(last / 2), last }
  return Object.entries(positions).map(([position, number]) => ({
    ...page(functionName, path, accessToken, position === 'middle' ? middleCalls : maxCalls),
    position,
    path: `/api/v1${path}${path.includes('?') ? '&' : '?'}page=${number}&pageSize=${pageSize}`,
  }))
}

async function sectionFor(all: readonly Page[]): Promise<Section> {
  const rows: Section['rows'][number][] = []
  const goals: Goal[] = []
  const times: Record<string, number> = {}
  for (const { list, position, functionName, path, accessToken, maxCalls, maxReadUnits } of all) {
    const handler = await handlerFor(functionName)
    const read = () => send(handler, getRequest(path, accessToken))
    await read()
    const { result, usage } = await metered(read)
    const { items } = expectSuccess(result).json
    if (items?.length === 0) throw new Error(`${path} is empty.`)
    const milliseconds: number[] = []
    for (const _ of range(9)) {
      const startedAtMs = performance.now()
      await read()
      milliseconds.push(performance.now() - startedAtMs)
    }
    times[`${list} ${position}`] = spread(milliseconds).median
    rows.push([list, position, storeCallsOf(usage), usage.readUnits, spread(milliseconds).median, result.bytes.length])
    goals.push(atMost(`${list}, ${position}: store calls`, storeCallsOf(usage), maxCalls))
    if (maxReadUnits !== undefined)
      goals.push(atMost(`${list}, ${position}: read units`, usage.readUnits, maxReadUnits))
  }
  const slowdown = (times['GET /clusters last'] ?? 0) / (times['GET /clusters first'] ?? 0)
  return {
    title: 'Pages of large lists',
    columns: ['list', 'page', 'store calls', 'read units', 'ms', 'response bytes'],
    rows,
    goals: [...goals, target(atMost('GET /clusters: time of the last page, × the first', slowdown, 1.5))],
  }
}
