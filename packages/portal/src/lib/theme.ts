import { useSyncExternalStore } from 'react'
import { remember, remembered } from './preferences.ts'

export type Theme = 'system' | 'light' | 'dark'

const isChosen = (name: string | undefined): name is 'light' | 'dark' => name === 'light' || name === 'dark'
const listeners = new Set<() => void>()
const current = (): Theme => {
  const { theme } = document.documentElement.dataset
  return isChosen(theme) ? theme : 'system'
}

/** Applies a theme and stores it. */
export function chooseTheme(theme: Theme): void {
  remember('theme', theme === 'system' ? undefined : theme)
  show(theme)
}

function show(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
  for (const listener of listeners) listener()
}

/** Applies the stored theme. */
export function showRememberedTheme(): void {
  const theme = remembered('theme')
  show(isChosen(theme) ? theme : 'system')
}

const darkness = matchMedia('(prefers-color-scheme: dark)')

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  darkness.addEventListener('change', listener)
  return () => {
    listeners.delete(listener)
    darkness.removeEventListener('change', listener)
  }
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, current)

const isDark = (): boolean => (current() === 'system' ? darkness.matches : current() === 'dark')

/** Whether the portal is dark now, for drawings that CSS does not style. */
export const useIsDark = (): boolean => useSyncExternalStore(subscribe, isDark)
