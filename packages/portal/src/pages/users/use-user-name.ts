import { useQuery } from '@tanstack/react-query'
import { useHasPermission, useMe } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'

/** So many users are named; others are known by their ids. */
const pageSize = 100

/** How a user is called; undefined where that is not known, as to whoever may not see the users. Asked once for all. */
export function useUserName(userId: string): string | undefined {
  const me = useMe()
  const maySee = useHasPermission('users:admin')
  const { data } = useQuery({
    queryKey: ['users', 'names'],
    enabled: maySee,
    queryFn: async ({ signal }) => {
      const { items } = await unwrap(api.GET('/api/v1/users', { params: { query: { pageSize } }, signal }))
      return Object.fromEntries(items.map(({ id, username }) => [id, username]))
    },
    staleTime: 60_000,
    retry: false,
  })
  return userId === me.id ? me.username : data?.[userId]
}
