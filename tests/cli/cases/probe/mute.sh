#!/bin/sh
# Stands for a program that answers and does not say how far the answers are.
for word; do
  case $word in *.base.part) echo answers of the base model > "$word" ;; esac
done
