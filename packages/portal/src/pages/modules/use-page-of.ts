import { useQuery } from '@tanstack/react-query'
import { navigationQuery } from '../../api/account.ts'

/** The page of a module's first navigation entry; undefined if it has none. */
export function usePageOf({ id }: { id: string }): { moduleId: string; _splat: string } | undefined {
  const { data } = useQuery(navigationQuery)
  const route = data?.items.find(({ source }) => source === `module:${id}`)?.route
  const [, moduleId, rest = ''] = /^\/modules\/([^/]+)\/?(.*)$/.exec(route ?? '') ?? []
  return moduleId === undefined ? undefined : { moduleId, _splat: rest }
}
