import { useNavigate } from '@tanstack/react-router'
import { endSession, forgetUser } from '../api/sign-in.ts'
import { removeOtherDrafts } from '../lib/draft-storage.ts'
import { mayLeave } from '../ui/leave.tsx'
import { showErrorToast } from '../ui/toast.tsx'

export function useSignOut(): () => void {
  const navigate = useNavigate()
  const signOut = async () => {
    if (!(await mayLeave())) return
    await endSession()
    removeOtherDrafts()
    await navigate({ to: '/sign-in' })
    // The data is removed after navigation, because the current page still needs it.
    forgetUser()
  }
  return () => void signOut().catch((error: unknown) => showErrorToast('Failed to sign out', error))
}
