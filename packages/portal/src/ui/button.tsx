import { Link, type LinkProps } from '@tanstack/react-router'
import { LoaderCircle, type LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import styles from './button.module.css'
import { classes } from './class-names.ts'

/** Use one `primary` button per page or dialog, and `danger` for irreversible actions. */
export type ButtonVariant = 'default' | 'primary' | 'danger' | 'quiet'

interface ButtonStyle {
  variant?: ButtonVariant
  icon?: LucideIcon | undefined
}

const classOf = (variant: ButtonVariant): string => classes(styles['button'], variant !== 'default' && styles[variant])

type ButtonProps = ComponentProps<'button'> & ButtonStyle & { isBusy?: boolean | undefined }

/** A button. While busy it keeps the focus and ignores clicks. */
export function Button({ variant = 'default', icon: Icon, isBusy = false, children, className, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} {...(isBusy && busyProps)} className={classes(classOf(variant), className)}>
      {isBusy ? <Spinner /> : Icon && <Icon size={16} aria-hidden />}
      {children}
    </button>
  )
}

const busyProps = {
  'aria-disabled': true,
  'aria-busy': true,
  onClick: (event: { preventDefault: () => void }) => event.preventDefault(),
}

type IconButtonProps = Omit<ComponentProps<'button'>, 'children'> & {
  label: string
  icon: LucideIcon
  isBusy?: boolean
}

/** A button with an icon. Its label is the accessible name and the tooltip. While busy it ignores clicks. */
export function IconButton({ label, icon: Icon, isBusy = false, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      {...(isBusy && busyProps)}
      className={classes(styles['button'], styles['quiet'], styles['square'], className)}
    >
      {isBusy ? <Spinner /> : <Icon size={18} aria-hidden />}
    </button>
  )
}

type ButtonLinkProps = LinkProps & ButtonStyle & { children: ReactNode }

export const ButtonLink = ({ variant = 'default', icon: Icon, children, ...rest }: ButtonLinkProps) => (
  <Link {...rest} className={classOf(variant)}>
    {Icon && <Icon size={16} aria-hidden />}
    {children}
  </Link>
)

/** Hidden from screen readers, because the text beside it describes the activity. */
export const Spinner = () => <LoaderCircle size={16} aria-hidden className={styles['spinning']} />

/** A button that looks like a link. */
export const TextButton = ({ onClick, children }: { onClick: () => void; children: ReactNode }) => (
  <button type="button" className={styles['text']} onClick={onClick}>
    {children}
  </button>
)
