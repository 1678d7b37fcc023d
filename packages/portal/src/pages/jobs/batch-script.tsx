import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { jobQuery } from './job-queries.ts'
import { ScriptCard } from './script-card.tsx'

/** The script of the last job. Jobs of a batch that was submitted through the API may have different scripts. */
export function BatchScript({ batchId }: { batchId: string }) {
  const { data: jobId } = useQuery({
    queryKey: ['batches', 'last job', batchId],
    queryFn: async ({ signal }) => {
      const query = { batchId, pageSize: 1 }
      const { items } = await unwrap(api.GET('/api/v1/jobs', { params: { query }, signal }))
      return items[0]?.id ?? null
    },
    staleTime: Infinity,
  })
  const { data: job } = useQuery({ ...jobQuery(jobId ?? ''), enabled: typeof jobId === 'string', staleTime: 60_000 })
  const script = job?.payload['script']
  return typeof script === 'string' && <ScriptCard title="Script of the last job" script={script} />
}
