import { send } from '../support/request.ts'
import { metered, storeCallsOf } from './support/meter.ts'
import { changeRequest, expectSuccess, getRequest } from './support/requests.ts'
import { atMost, type Effort, type Goal, type Section, asTarget } from './support/section.ts'
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
  /** Body of a POST request. Without it, the request is a GET. */
  body?: object
  /** Target duration. A missed target does not fail the run. */
  maxMs?: number
}

export async function* measureLists(environment: Record<string, string>, { isQuick }: Effort): AsyncGenerator<Section> {
  await setUp()
  const [clusters, jobs, entries] = isQuick ? [10_000, 10_000, 2000] : [100_000, 100_000, 20_000]
  const fleet = await writeFleet(environment, clusters)
  const fleetToken = await newToken(fleet.organisationId)
  const labelledToken = isQuick ? fleetToken : await newToken((await writeFleet(environment, 10_000)).organisationId)
  const historyToken = await newToken(await writeHistory(environment, jobs, entries))
  const clusterId = fleet.clusterIds[clusters / 2]
  yield await sectionFor([
    { ...page('clusters', `/clusters/${clusterId}`, fleetToken, 1), position: 'one', maxReadUnits: 4 },
    ...pages('clusters', '/clusters', fleetToken, clusters, 3, true).map((each) => ({ ...each, maxReadUnits: 20 })),
    ...pages('clusters', '/clusters?status=Healthy', fleetToken, clusters * 0.9, 4),
    ...pages('clusters', '/clusters?type=Hypervisor', fleetToken, clusters / 2, 4),
    ...pages('clusters', '/clusters?status=Healthy&type=Hypervisor', fleetToken, clusters * 0.45, 4),
    page('clusters', '/clusters?search=cluster-0000', fleetToken, 2 + Math.ceil(clusters / 8000)),
    ...selections(labelledToken, 10_000),
    ...(isQuick ? [] : selections(fleetToken, clusters)),
    ...pages('jobs', '/jobs', historyToken, jobs, 3),
    ...pages('jobs', '/jobs?status=Failed', historyToken, jobs / 5, 3),
    ...pages('audit', '/platform/audit', historyToken, entries, 2),
    page('audit', '/platform/audit?action=cluster.update', historyToken, 2 + Math.ceil(entries / 50_000)),
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

const selector = 'env=prod,tier in (web,api),!legacy'

/** Requests that read all clusters. Their limits are in proportion to the number of clusters. */
function selections(accessToken: string, count: number): Page[] {
  const factor = count / 10_000
  const limits = { position: `of ${count}`, maxReadUnits: 1500 * factor, maxMs: 1000 * factor }
  const query = `selector=${encodeURIComponent(selector)}`
  const resolve = { list: 'POST /targets/resolve', body: { target: { selector } } }
  return [
    {
      ...page('clusters', `/clusters?${query}&pageSize=20`, accessToken, 12 * factor),
      ...limits,
      list: 'GET /clusters?selector=',
    },
    {
      ...page('clusters', `/clusters?${query}&status=Healthy`, accessToken, 15 * factor),
      ...limits,
      list: 'GET /clusters?selector=&status=',
    },
    { ...page('clusters', '/clusters/labels', accessToken, 12 * factor), ...limits },
    ...['name', '-site', 'status'].map((sort) => ({
      ...page('clusters', `/clusters?sort=${sort}&page=50&pageSize=100`, accessToken, 12 * factor),
      ...limits,
      list: `GET /clusters?sort=${sort}`,
    })),
    { ...page('clusters', '/targets/resolve', accessToken, 12 * factor), ...limits, ...resolve },
    {
      ...page('clusters', '/targets/resolve', accessToken, 12 * factor),
      ...limits,
      list: 'POST /targets/resolve, all, with status',
      body: { target: { all: true }, includeStatus: true },
    },
  ]
}

/** The first, middle and last page. The middle page of a list without offsets reads the index from the nearer end. */
function pages(
  functionName: string,
  path: string,
  accessToken: string,
  count: number,
  maxCalls: number,
  hasOffsets = maxCalls === 2,
): Page[] {
  const lastPage = Math.ceil(count / pageSize)
  const middleCalls = hasOffsets ? maxCalls : maxCalls - 1 + Math.ceil(count / 7500)
  const positions = { first: 1, middle: Math.ceil(lastPage / 2), last: lastPage }
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
  for (const { list, position, functionName, path, accessToken, maxCalls, maxReadUnits, maxMs, body } of all) {
    const handler = await handlerFor(functionName)
    const request = body ? changeRequest('POST', path, accessToken, body) : getRequest(path, accessToken)
    const read = () => send(handler, request)
    await read()
    const { result, usage } = await metered(read)
    const { items } = expectSuccess(result).json
    if (items?.length === 0) throw new Error(`${path} is empty.`)
    const timesMs: number[] = []
    for (const _ of range(9)) {
      const startedAtMs = performance.now()
      await read()
      timesMs.push(performance.now() - startedAtMs)
    }
    times[`${list} ${position}`] = spread(timesMs).median
    rows.push([list, position, storeCallsOf(usage), usage.readUnits, spread(timesMs).median, result.bytes.length])
    goals.push(atMost(`${list}, ${position}: store calls`, storeCallsOf(usage), maxCalls))
    if (maxMs !== undefined) goals.push(asTarget(atMost(`${list}, ${position}: ms`, spread(timesMs).median, maxMs)))
    if (maxReadUnits !== undefined)
      goals.push(atMost(`${list}, ${position}: read units`, usage.readUnits, maxReadUnits))
  }
  const slowdown = (times['GET /clusters last'] ?? 0) / (times['GET /clusters first'] ?? 0)
  return {
    title: 'Pages of large lists',
    columns: ['list', 'page', 'store calls', 'read units', 'ms', 'response bytes'],
    rows,
    goals: [...goals, asTarget(atMost('GET /clusters: time of the last page, × the first', slowdown, 1.5))],
  }
}
