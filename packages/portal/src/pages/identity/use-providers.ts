import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'

const queryKey = ['identity-providers']
const pollSeconds = 15

/** Polls for the results of consent requests. */
export const useProviders = () =>
  useQuery({
    queryKey,
    queryFn: () => unwrap(api.GET('/api/v1/platform/identity/providers')),
    refetchInterval: pollEvery(pollSeconds),
  })

/** The sign-in page also lists providers. */
export async function refreshProviders(): Promise<void> {
  void queries.invalidateQueries({ queryKey: ['sign-in-choices'] })
  await queries.invalidateQueries({ queryKey })
}
