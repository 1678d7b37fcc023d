import { queryOptions, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Schemas } from '../../api/client.ts'
import { pollEvery, queries, refreshModules } from '../../api/query.ts'
import { jobQuery } from '../jobs/job-queries.ts'

/** A job of the platform itself, such as a module installation or an update. */
export type Operation = Schemas['Job']

const pollSeconds = 1

const isFinished = (job: Operation | undefined): boolean => job?.completedAt !== undefined

export const operationQuery = (jobId: string) =>
  queryOptions({
    ...jobQuery(jobId),
    refetchInterval: (query) => (isFinished(query.state.data) ? false : pollEvery(pollSeconds)(query)),
    staleTime: (query) => (isFinished(query.state.data) ? Infinity : 0),
  })

/** Follows a job until it has ended, then refetches the data that it may have changed. */
export function useOperation(jobId: string) {
  const query = useQuery(operationQuery(jobId))
  const isDone = isFinished(query.data)
  useEffect(() => {
    if (!isDone) return
    for (const name of ['navigation', 'summary', 'notifications', 'updates']) {
      void queries.invalidateQueries({ queryKey: [name] })
    }
    void refreshModules()
  }, [isDone, jobId])
  return query
}
