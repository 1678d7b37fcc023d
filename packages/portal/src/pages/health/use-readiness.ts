import { useQuery } from '@tanstack/react-query'
import { ApiError } from '../../api/api-error.ts'
import { api, type Schemas } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'

const pollSeconds = 10

/** Readiness is returned with 200 or 503, in the same format. */
async function readiness(): Promise<Schemas['Readiness']> {
  const { data, error, response } = await api.GET('/health/ready').catch((cause: unknown) => {
    throw ApiError.unreachable(cause)
  })
  if (data !== undefined) return data
  if (response.status === 503 && typeof error === 'object' && 'checks' in error) return error
  throw new ApiError(response.status, error, response.headers)
}

export const useReadiness = () =>
  useQuery({ queryKey: ['health', 'ready'], queryFn: readiness, staleTime: 0, refetchInterval: pollEvery(pollSeconds) })
