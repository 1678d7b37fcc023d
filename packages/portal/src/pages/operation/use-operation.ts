import { queryOptions, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Schemas } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'
import { jobQuery } from '../jobs/job-query.ts'
import { refreshModules } from '../modules/use-modules.ts'

/** Jobs of the platform on itself: installations of modules, updates. */
export type Operation = Schemas['Job']

/** A job that does not end is looked at this often; a failing look is tried again by the habits of all queries. */
const pollSeconds = 1

const isOver = (job: Operation | undefined): boolean => job?.completedAt !== undefined

export const operationQuery = (jobId: string) =>
  queryOptions({
    ...jobQuery(jobId),
    refetchInterval: (query) => (isOver(query.state.data) ? false : pollEvery(pollSeconds)(query)),
    staleTime: (query) => (isOver(query.state.data) ? Infinity : 0),
  })

/** A job, followed to its end. By then whatever it may have changed is asked for anew, once. */
export function useOperation(jobId: string) {
  const query = useQuery(operationQuery(jobId))
  const isDone = isOver(query.data)
  useEffect(() => {
    if (!isDone) return
    for (const name of ['navigation', 'summary', 'notifications', 'updates']) {
      void queries.invalidateQueries({ queryKey: [name] })
    }
    void refreshModules()
  }, [isDone, jobId])
  return query
}
