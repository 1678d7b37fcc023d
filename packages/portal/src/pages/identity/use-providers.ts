import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'

const queryKey = ['identity-providers']
const pollSeconds = 15

/** The providers of the organisation. What becomes of a request for consent is seen by itself. */
export const useProviders = () =>
  useQuery({
    queryKey,
    queryFn: () => unwrap(api.GET('/api/v1/platform/identity/providers')),
    refetchInterval: pollEvery(pollSeconds),
  })

/** Something has changed: the sign-in page offers something else now, too. */
export async function refreshProviders(): Promise<void> {
  void queries.invalidateQueries({ queryKey: ['sign-in-choices'] })
  await queries.invalidateQueries({ queryKey })
}
