import { useQuery } from '@tanstack/react-query'
import { useHasPermission, useMe } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { nameOf } from '../../lib/user-name.ts'

// Users beyond the first page are shown by id.
const pageSize = 100

/** The name of a user; undefined if the caller may not read users, or for users beyond the first page. One request loads all of these names. */
export function useUserName(userId: string): string | undefined {
  const me = useMe()
  const mayReadUsers = useHasPermission('users:admin')
  const { data } = useQuery({
    queryKey: ['users', 'names'],
    enabled: mayReadUsers,
    queryFn: async ({ signal }) => {
      const { items } = await unwrap(api.GET('/api/v1/users', { params: { query: { pageSize } }, signal }))
      return Object.fromEntries(items.map((user) => [user.id, nameOf(user)]))
    },
    staleTime: 60_000,
    retry: false,
  })
  return userId === me.id ? nameOf(me) : data?.[userId]
}
