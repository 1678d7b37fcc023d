import { queryOptions, useIsMutating, useMutation, useQuery } from '@tanstack/react-query'
import { api, type Schemas, expectNoBody } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { showToast, showErrorToast } from '../../ui/toast.tsx'

type Stored = Schemas['WidgetPlacement'][]

/** The layout as it is shown, as the platform has it, and the tag of that; no layout: none was ever saved. */
interface Known {
  layout: Stored | undefined
  saved: Stored | undefined
  etag: string | undefined
  /** Counts what the user has changed since the layout was read. */
  changes: number
}

const layoutQuery = queryOptions({
  queryKey: ['dashboard-layout'],
  queryFn: async (): Promise<Known> => {
    let etag: string | undefined
    const call = api.GET('/api/v1/users/me/dashboard-layout').then((answer) => {
      etag = answer.response.headers.get('etag') ?? undefined
      return answer
    })
    const layout = (await expectNoBody(call))?.layout
    return { layout, saved: layout, etag, changes: 0 }
  },
})

const mutationKey = ['save-dashboard-layout']

const known = (): Known | undefined => queries.getQueryData(layoutQuery.queryKey)
const learn = (news: Partial<Known>): void => {
  queries.setQueryData(layoutQuery.queryKey, (before) => before && { ...before, ...news })
}

/** Saves a change, unless a newer one waits to be saved; only over the layout that it was made from. */
async function save(change: number): Promise<void> {
  const current = known()
  if (current?.layout === undefined || current.changes !== change) return
  const { layout } = current
  const header = current.etag === undefined ? {} : { 'if-match': current.etag }
  const call = api.PATCH('/api/v1/users/me/dashboard-layout', { params: { header }, body: { layout } })
  try {
    await expectNoBody(call)
    const { response } = await call
    learn({ saved: layout, etag: response.headers.get('etag') ?? undefined })
  } catch (error) {
    if (isApiError(error, 'precondition_failed')) {
      await queries.refetchQueries(layoutQuery)
      showToast('The dashboard was changed in another tab', 'Its layout is shown now; your last change was not saved.')
      return
    }
    // A newer change is tried all the same.
    if (known()?.changes !== change) return
    learn({ layout: current.saved })
    showErrorToast('The layout was not saved', error)
  }
}

/**
 * The dashboard's layout, and what changes it: at once to the eye, one save after another to the platform. What is put
 * aside while a save is under way is never sent: only the newest is.
 */
export function useLayout() {
  const isSaving = useIsMutating({ mutationKey }) > 0
  const { mutate } = useMutation({ mutationKey, mutationFn: save, scope: { id: 'dashboard-layout' } })
  // What is shown while it is saved is newer than what could be read.
  const query = useQuery({
    ...layoutQuery,
    refetchOnMount: !isSaving,
    refetchOnWindowFocus: !isSaving,
    refetchOnReconnect: !isSaving,
  })
  const change = (layout: Stored) => {
    void queries.cancelQueries(layoutQuery)
    const changes = (known()?.changes ?? 0) + 1
    learn({ layout, changes })
    mutate(changes)
  }
  return { query, change, isSaving }
}
