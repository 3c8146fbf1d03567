/* Assembly without frame information that realigns its stack, behind a call that tells no address. */
__asm__(".text\n"
        ".globl realigned\n"
        ".type realigned, @function\n"
        "realigned:\n"
        "  mov %rsp, %r11\n"
        "  and $-64, %rsp\n"
        "  mov $200000000, %ecx\n"
        "1:\n"
        "  dec %ecx\n"
        "  jnz 1b\n"
        "  mov %r11, %rsp\n"
        "  ret\n"
        ".size realigned, .-realigned\n");
void realigned(void);

__attribute__((noinline)) static void calls(void) {
  realigned();
  __asm__ volatile("");
}

__attribute__((noinline)) static void spends(void (*volatile what)(void)) {
  for (int i = 0; i < 8; i++) what();
  __asm__ volatile("");
}

int main(void) { spends(calls); }
