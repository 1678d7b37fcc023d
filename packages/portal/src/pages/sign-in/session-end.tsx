import type { UserNames } from '@platform/contract/user-name'
import { meQuery } from '../../api/account.ts'
import { queries } from '../../api/query.ts'
import { readUser } from '../../api/session.ts'
import { hasInput } from '../../ui/draft.ts'
import { unload } from '../../ui/leave.tsx'
import { newOverlay } from '../../ui/overlay.ts'

const overlay = newOverlay()

/** The dialog of `recoverSession`. Render it once. */
export const SessionEnd = () => overlay.useContent()

/**
 * Called when the session of the tab has ended or belongs to another user. A tab with unsaved input shows a sign-in
 * dialog over the page. Any other tab shows the sign-in page or, for another user, reloads. Returns whether the same
 * user is signed in again.
 */
export async function recoverSession(href: string, showSignInPage: () => void): Promise<boolean> {
  const user = queries.getQueryData(meQuery.queryKey)
  // A user who was not signed in has no session that could end.
  if (user === undefined || href.startsWith('/sign-in')) return false
  const currentUser = await readUser()
  if (currentUser?.id === user.id) return true
  if (hasInput()) return signInAgain(user, currentUser, href)
  // All data of the previous user must be dropped.
  if (currentUser !== undefined) location.reload()
  else showSignInPage()
  return false
}

interface User extends UserNames {
  id: string
}

async function signInAgain(user: User, currentUser: User | undefined, href: string): Promise<boolean> {
  try {
    const { SignInAgain } = await import('./sign-in-again.tsx')
    await new Promise<void>((resolve) =>
      overlay.show(<SignInAgain user={user} initialOther={currentUser} returnTo={href} onSignedIn={resolve} />),
    )
    overlay.show(undefined)
    return true
  } catch {
    // The dialog could not be loaded. A full load of the sign-in page needs no files of this version, and drafts are
    // restored afterwards.
    unload(() => location.assign(`/sign-in?returnTo=${encodeURIComponent(href)}`))
    return false
  }
}
